import multiprocessing

from gradscope.inspect.debuggee.processes import StartedProcesses


def work(*unused):
    pass


def run(target, *args):
    process = multiprocessing.get_context("fork").Process(target=target, args=args)
    process.start()
    process.join()


def test_processes_are_counted_by_what_they_run():
    started = StartedProcesses()
    with started.gathering():
        run(work)
        run(work, 1)
    run(work)
    assert started.unseen.startswith("2 processes that the script started, which run `work`: ")


def test_what_a_wrapper_is_given_is_what_runs():
    def wrap(*unused):
        pass

    wrap.__module__ = "torch.multiprocessing.spawn"
    started = StartedProcesses()
    with started.gathering():
        run(wrap, work, 0)
    assert started.unseen.startswith("1 process that the script started, which runs `work`: ")


def test_a_class_of_the_program_counts_by_its_name():
    class Trainer(multiprocessing.get_context("fork").Process):
        pass

    started = StartedProcesses()
    with started.gathering():
        process = Trainer()
        process.start()
        process.join()
    assert "which runs `test_a_class_of_the_program_counts_by_its_name.<locals>.Trainer`" in started.unseen


def test_helpers_are_left_out():
    def worker(*unused):
        pass

    worker.__module__ = "torch.utils.data._utils.worker"
    started = StartedProcesses()
    with started.gathering():
        run(worker)
    assert started.unseen == ""


def test_a_pool_is_told_later_what_to_run():
    started = StartedProcesses()
    with started.gathering(), multiprocessing.get_context("fork").Pool(1) as pool:
        pool.map(work, [1])
    assert "which runs what a Pool is given: " in started.unseen
