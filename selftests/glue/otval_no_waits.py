"""A pytest plugin under which an endpoint that does not answer is asked again at once."""

from tenacity import wait_none

from pytest_otval.llm import client

client._BACKOFF = wait_none()
client.FIRST_WAIT = 0.001
