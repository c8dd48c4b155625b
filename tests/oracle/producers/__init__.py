"""What producers' SDKs of several languages pick, by the SDKs themselves."""
