"""What is not the loop: clusterings of similarities, modes and information, as functions of plain arrays."""
