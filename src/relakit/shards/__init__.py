"""Long work over sentence pairs, shard by shard, on one process, many, or a cluster.

A shard is a run of consecutive pairs. Its result depends on those pairs alone, so it does not
matter who does it, when, or how often. The output is the results of all shards in order.
"""
