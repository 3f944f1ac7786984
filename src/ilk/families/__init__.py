"""What a component is."""
