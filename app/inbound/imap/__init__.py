"""``covey imap``: watches a mailbox, routes its messages, and files them in folders."""
