"""Immutable records of what runs, and how they are made on the program's own thread.

- :mod:`~.node_records`: the nodes of a backward by place, whoever reads them
- :mod:`~.records`: the records that every face reads: nodes, edges, tensors, places, states
- :mod:`~.quick_making`: frozen records in a third of the time
- :mod:`~.record_html`: nodes and tensors in a notebook
- :mod:`~.snapshots`: from live nodes and tensors to records
- :mod:`~.tensor_statistics`: a tensor in numbers: norm, range, zeros, NaN, magnitudes
- :mod:`~.moments`: the same, as a device has counted it
- :mod:`~.checksums`: 64 bits that tell tensors apart, and whose shards add up
- :mod:`~.tensor_pages`: parts of a tensor, its extreme elements, how two differ
- :mod:`~.naming`: what leaves and nodes are called
- :mod:`~.node_identity`: what a node has in common with the same one of another run or process
- :mod:`~.module_tracking`: which module a node belongs to, learned while forward runs
- :mod:`~.execution_order`: the order in which the engine will run a graph
- :mod:`~.optimizer_steps`: when optimizers step
- :mod:`~.before_step`: what a rank holds before a step, and the forwards, backwards, lines and writes that led to it
- :mod:`~.write_account`: who wrote which memory, and who could
- :mod:`~.write_facts`: what is told of such writes, which rules judge
- :mod:`~.loss_value`: the loss of a backward, read where the program calls backward()
- :mod:`~.own_rank`: which rank of a job this process is
- :mod:`~.object_search`: finding living objects, wherever the program keeps them
"""
