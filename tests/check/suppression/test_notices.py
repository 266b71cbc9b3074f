from gradscope.check.suppression.notices import meant


def test_the_nearest_word_is_asked_for():
    assert meant("output_file", ["format", "output-file"]) == "did you mean 'output-file'?"


def test_all_words_are_named_where_none_is_near():
    assert meant("zzz", ["format", "first"]) == "there are format, first"
