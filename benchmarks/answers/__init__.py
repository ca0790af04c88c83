"""How commands answer to broken inputs and wrong uses, measured."""
