def fish_script(program):
    return ""
