"""What training programs use beside modules and optimizers."""
