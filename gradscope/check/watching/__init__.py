"""What is heard and kept of a program while it runs, of which the rules are told.

- :mod:`~.watcher`: which writes, saved tensors and nodes a program's forward and backward have
- :mod:`~.continuing_watcher`: the same where the program goes on after a violation
- :mod:`~.shared_writes`: what watchers share: each write, its line and who it spoils
- :mod:`~.custom_functions`: tensors that custom Functions keep on ``ctx`` or write silently
- :mod:`~.saved_values`: whether memory holds what was saved, where no version tells
- :mod:`~.early_writes`: whether results are as they were computed when they are read
- :mod:`~.expanded_parts`: which places of an expanded tensor an index takes
- :mod:`~.kept_values`: copies of what is about to be overwritten
- :mod:`~.wrong_gradients`: how far off gradients would have been
- :mod:`~.task_nodes`: which node of a backward got which gradient
- :mod:`~.tensor_names`: what the program calls a tensor
- :mod:`~.violation_facts`: what watchers state, for :mod:`gradscope.check.rules` to judge
"""
