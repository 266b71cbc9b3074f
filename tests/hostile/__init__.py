"""Files and names of strangers, made to harm, through everything that reads or shows them."""
