"""What longer training changes in the models of `relakit reproduce`."""
