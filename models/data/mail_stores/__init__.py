"""Mail as mail programs store it: mailboxes, and folders of messages.

- ``mailbox_file``: the messages of an mbox file.
- ``folders``: what each file in a folder of mail is.
- ``store``: the messages of all files, with ``copies`` of one message found.
- ``header_labels``: labels in header fields.
"""
