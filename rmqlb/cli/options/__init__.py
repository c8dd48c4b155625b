"""What commands can be given: options declared once, for the commands that share them."""
