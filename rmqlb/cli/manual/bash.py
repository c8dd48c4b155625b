def bash_script(program):
    return ""
