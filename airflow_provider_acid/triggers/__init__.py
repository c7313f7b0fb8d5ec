"""What the operators wait for while deferred."""
