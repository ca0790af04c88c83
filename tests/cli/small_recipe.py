"""A recipe for four updates of a tiny model on generated text."""

RECIPE = """
[data.generated]
train = 300
valid = 20
test = 20

[data]
vocab_size = 400

[model]
size = "tiny"
dim = 16
heads = 2
encoder_layers = 1
decoder_layers = 1
feed_forward = 16

[training]
updates = 4
batch_tokens = 300
update_tokens = 300
checkpoint_every = 2
threads = 1

[validation]
every = 2
"""
