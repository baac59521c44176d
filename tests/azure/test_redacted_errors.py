"""No secret is left in what a library says, and nothing else is taken out of it."""

import base64

import pytest

from allranks.azure.errors import AzureError, service_errors
from allranks.errors import InputError, Problem
from allranks.secrets import redact

KEY = base64.b64encode(bytes(range(64))).decode()
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJodHRwczovL21sIn0.c2lnbmF0dXJl-_x"
SIGNATURE = "d%2BoPq1Zr%2F8u%3D"

SECRETS = {
    "a bearer token": (f"Authorization: Bearer {TOKEN}", TOKEN),
    "a bearer token that is no JWT": ("authorization: bearer abc.def-ghi_12345", "abc.def-ghi_12345"),
    "a token by itself": (f"cannot decode {TOKEN}", TOKEN),
    "a SAS signature": (f"GET https://a.blob.core.windows.net/c/b?sv=2023&sig={SIGNATURE}&se=2030 failed", SIGNATURE),
    "a SAS signature at the end": (f"'https://a.blob.core.windows.net/c?sig={SIGNATURE}'", SIGNATURE),
    "a SAS that is escaped once more": (f"url=https%3A%2F%2Fa%3Fsig%3D{SIGNATURE}", SIGNATURE),
    "an account key": (f'{{"key": "{KEY}"}}', KEY),
    "an account key by itself": (f"the key {KEY} is wrong", KEY),
    "a storage connection string": (f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={KEY};End=x", KEY),
    "a SAS connection string": (f"BlobEndpoint=https://a;SharedAccessSignature=sv=2023&sig={SIGNATURE}", SIGNATURE),
    "a bus connection string": ("Endpoint=sb://a;SharedAccessKeyName=n;SharedAccessKey=c2VjcmV0=", "c2VjcmV0="),
    "a telemetry connection string": ("InstrumentationKey=0000-1111;IngestionEndpoint=https://x", "0000-1111"),
    "a client secret in a form": ("grant_type=x&client_secret=s3cr~t.v&scope=y", "s3cr~t.v"),
    "a client secret in a variable": ("AZURE_CLIENT_SECRET=s3cr~t.v", "s3cr~t.v"),
    "an access token in JSON": ('{"access_token": "opaque-value", "expires_in": 1}', "opaque-value"),
    "a refresh token": ('{"refresh_token":"opaque-value"}', "opaque-value"),
    "a primary key": ('{"primaryKey": "abc+/=="}', "abc+/=="),
    "a password": ("Server=tcp:x;User ID=u;Password=hunter2;", "hunter2"),
    "a token of git": ("fatal: https://user:ghp_abc@github.com/x/y not found", "ghp_abc"),
    "shared key": ("Authorization: SharedKey account:abcdefghijk=", "abcdefghijk="),
}


@pytest.mark.parametrize(("text", "secret"), SECRETS.values(), ids=SECRETS)
def test_a_secret_is_taken_out(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert "***" in redact(text)


@pytest.mark.parametrize(("text", "secret"), SECRETS.values(), ids=SECRETS)
def test_no_error_has_it(text: str, secret: str) -> None:
    from azure.core.exceptions import HttpResponseError, ServiceRequestError

    for raised in (ServiceRequestError(text), HttpResponseError(text)):
        with pytest.raises((AzureError, InputError)) as told, service_errors("asking"):
            raise raised
        assert secret not in str(told.value)


@pytest.mark.parametrize(
    "text",
    [
        "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET of a service principal",
        "--tag KEY=VALUE it is not KEY=VALUE",
        "https://ml.azure.com/runs/calm_plum_123?wsid=/subscriptions/0000/resourceGroups/rg",
        "component train:1.2.0 (azureml_anonymous/versions/ed05b698-3348-35e1-86f1-b139a1900910)",
        "1a5053d93fa3e5a243665c2b3696ea6c368ccdbefd32d380b2f1df3f1894cf42",
        "the design has a single signature",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_a_failure_by_itself_has_none() -> None:
    assert str(AzureError(Problem("x", f"Bearer {TOKEN}"))) == "x: Bearer ***"
    assert str(AzureError(Problem("", f"AccountKey={KEY}"))) == "AccountKey=***"
