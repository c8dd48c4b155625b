"""Programs that ask SDKs, each in the SDK's own language; they run outside of this project's environment."""
