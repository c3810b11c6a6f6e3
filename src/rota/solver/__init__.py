"""What every search shares: when to stop, and how a solve can end."""
