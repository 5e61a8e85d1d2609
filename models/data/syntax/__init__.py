"""The syntax of formats for which no library serves: the parts of a text, without their meaning for examples.

- ``json_stream``: finds the values in a stream of JSON. ``json_values``: parses one of them.
- ``arff``: the header and the rows of ARFF. ``mulan_xml``: the labels of an ARFF data set.
"""
