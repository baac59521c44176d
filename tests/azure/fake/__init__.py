"""A fake of Azure ML's service on loopback, for tests only.

A client reaches it by Azure's own host names: the fake is an HTTPS proxy that answers for them, with a certificate
of an authority that is made for the tests. Nothing of the client is replaced, no URL is overridden, and a request to
any other host is refused and remembered.
"""
