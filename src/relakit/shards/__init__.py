"""Long work over sentence pairs, shard by shard, on one process, many, or a cluster.

A shard is some consecutive pairs. What is made of it depends on these alone, so it does not matter
who does it, when, or how often; the output is all of them in their order.
"""
