"""All ranks of a ``torch.distributed`` program: one debugger over them, and their recordings as one run.

- :mod:`~.launch`: starts the ranks, each a process with what ``torchrun`` gives it
- :mod:`~.rank_discovery`: the ranks of a job that `torchrun` has started, and that listen
- :mod:`~.rank_group`: the debuggers of all ranks as one, which stop together
- :mod:`~.rank_session`: the ranks as the session of a screen: where one stops, it is shown, and the others stop
- :mod:`~.rank_comparison`: the current node on every rank, and whose graph differs
- :mod:`~.rank_prompt`: the prompt on them
- :mod:`~.recorded_ranks`: the recordings that the ranks have written apart, opened as one run
- :mod:`~.run_view`: such a run as text
- :mod:`~.rank_trace`: such a run on one time line
- :mod:`~.tensorboard_events`: such a run in TensorBoard
- :mod:`~.agreement`: whether the ranks hold the same gradients and parameters
- :mod:`~.replicas`: which of them should, in a pipeline whose stages are replicated, and whether they hold one model
- :mod:`~.rank_ends`: how each came to its end, or where it hangs
- :mod:`~.live_agreement`: the same while they train
- :mod:`~.live_hangs`: whether they wait for each other, while they run
- :mod:`~.disagreement_causes`: why they do not
- :mod:`~.uneven_loops`: which of them runs fewer backwards than others: it skips iterations, or leaves its loop
- :mod:`~.rank_difference`: where two of them part, by tolerance
- :mod:`~.agreement_report`: both as text and JSON
- :mod:`~.lake`: recordings as a Parquet dataset, and questions to it in SQL
"""
