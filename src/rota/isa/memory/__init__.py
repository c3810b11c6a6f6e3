"""Memory instructions, and the memories that they access: LDS, global and private."""
