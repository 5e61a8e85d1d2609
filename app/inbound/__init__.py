"""Sources of messages: commands and operations that reduce each message to its bytes and route it."""
