"""A debugger session: the program that runs, stops and goes on, and what is seen where it stands.

- :mod:`~.debugger`: ``Debugger``: start a program, stop it inside its backward, look, change, go on
- :mod:`~.debugger_html`: a debugger in a notebook: where it stands
- :mod:`~.debug_call`: ``gi.debug(loss)``: a debugger for one backward
- :mod:`~.inline_prompt`: ``gi.post_mortem()``, and the prompt of ``gi.set_trace()``, on the program's own thread
- :mod:`~.session_observer`: the program's side: hears of every node, decides whether to stop, waits at the gate
- :mod:`~.session_lifecycle`: start, stop, end; who waits and listens is told
- :mod:`~.session_errors`: what a session raises
- :mod:`~.requested_stops`: stops that the program asks for
- :mod:`~.backward_threads`: the threads that call backward(), and which is followed
- :mod:`~.debugged_backward`: one backward: its nodes in order, and what has been seen of each
- :mod:`~.node_sequence`: nodes as a sequence that makes a record when somebody looks at it
- :mod:`~.pause_context`: what can be done at a stop: look, evaluate, edit a gradient
- :mod:`~.session_queries`: what a stopped program is asked: memory, flow, why it has stopped
- :mod:`~.session_findings`: what is wrong with the backward at hand, ranked; why no gradient
- :mod:`~.looking_time`: how much of its time a program that runs free is looked at
- :mod:`~.backward_outlook`: what the nodes ahead will do, by what they have saved
- :mod:`~.model_queries`: what is known of modules and parameters, with the norms over the backwards
- :mod:`~.model_records`: makes the records of that
- :mod:`~.tensor_queries`: looking into a tensor page by page, comparing two, saving one
- :mod:`~.session_records`: records of findings, modules, parameters, watches, threads, stacks, what-ifs
"""
