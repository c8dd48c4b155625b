"""What a policy found."""
