def zsh_script(program):
    return ""
