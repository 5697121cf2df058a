"""What tests ask of an S3 store themselves: a small client, independent of the one under test.

  client = Client("http://127.0.0.1:8333", "key", "secret")
  client.put("bucket", "some key", b"content").status        200
  client.get("bucket", "no key").code                         "NoSuchKey"

Every request has a connection of its own, so that threads may share a client.
"""

import dataclasses
import hashlib
import hmac
import http.client
import re
import time
import urllib.parse
from xml.etree import ElementTree

REGION = "us-east-1"


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict  # by name in lower case
    body: bytes

    @property
    def code(self):
        """The code of an error, such as "NoSuchKey"; "" if there is none."""
        found = re.search(rb"<Code>(.*?)</Code>", self.body)
        return found[1].decode() if found and self.status >= 300 else ""

    @property
    def etag(self):
        return self.headers.get("etag", "")

    def xml(self):
        """The root element, with tags stripped of their namespace."""
        root = ElementTree.fromstring(self.body)
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        return root

    def texts(self, path):
        """The texts of the elements at a path below the root."""
        return [element.text or "" for element in self.xml().findall(path)]


def quote(text, safe=""):
    return urllib.parse.quote(text, safe=safe)  # leaves A-Z a-z 0-9 - _ . ~, as AWS asks


def canonical_query(query):
    """The canonical form of (name, value) pairs."""
    return "&".join(sorted(f"{quote(name)}={quote(value)}" for name, value in query))


def authorization(key, secret, method, path, query, headers, region=REGION):
    """The Authorization of a request whose `headers`, all of which are signed, have names in lower
    case and hold host, x-amz-date and x-amz-content-sha256. `path`: encoded.
    (AWS, Signature Version 4: create a signed request.)"""
    at, names = headers["x-amz-date"], ";".join(sorted(headers))
    request = "\n".join([method, path, canonical_query(query),
                         *(f"{name}:{headers[name].strip()}" for name in sorted(headers)), "",
                         names, headers["x-amz-content-sha256"]])
    scope = f"{at[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", at, scope, hashlib.sha256(request.encode()).hexdigest()])
    signature = f"AWS4{secret}".encode()
    for part in (*scope.split("/"), text):
        signature = hmac.digest(signature, part.encode(), "sha256")
    return (f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, "
            f"Signature={signature.hex()}")


class Client:
    def __init__(self, endpoint, key, secret, skew_s=0, timeout_s=60):
        """`skew_s`: of the client's clock. `timeout_s`: for a connection on which nothing
        arrives."""
        self.endpoint = endpoint
        self._key, self._secret = key, secret
        self._skew_s, self._timeout_s = skew_s, timeout_s

    def request(self, method, path, query=(), headers=None, body=b""):
        """`path`: "/bucket/key", not encoded. `query`: (name, value) pairs or a dict."""
        query = list(query.items() if isinstance(query, dict) else query)
        host, path = urllib.parse.urlparse(self.endpoint).netloc, quote(path, "/")
        headers = {
            "host": host, "x-amz-content-sha256": hashlib.sha256(body).hexdigest(),
            "x-amz-date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + self._skew_s)),
            **{name.lower(): value for name, value in (headers or {}).items()}}
        headers["authorization"] = authorization(self._key, self._secret, method, path, query,
                                                 headers)
        connection = http.client.HTTPConnection(host, timeout=self._timeout_s)
        try:
            connection.request(method, f"{path}?{canonical_query(query)}" if query else path,
                               body or (b"" if method in ("PUT", "POST") else None), headers)
            answer = connection.getresponse()
            return Answer(answer.status,
                          {name.lower(): value for name, value in answer.getheaders()},
                          answer.read())
        finally:
            connection.close()

    # --- Objects.

    def put(self, bucket, key, body, **headers):
        return self.request("PUT", f"/{bucket}/{key}", headers=_dashes(headers), body=body)

    def get(self, bucket, key, **headers):
        return self.request("GET", f"/{bucket}/{key}", headers=_dashes(headers))

    def head(self, bucket, key):
        return self.request("HEAD", f"/{bucket}/{key}")

    def delete(self, bucket, key):
        return self.request("DELETE", f"/{bucket}/{key}")

    def create_bucket(self, bucket):
        return self.request("PUT", f"/{bucket}")

    def list(self, bucket, **query):
        """Gets one page; a name such as max_keys stands for max-keys."""
        return self.request("GET", f"/{bucket}", {"list-type": "2", **_dashes(query)})

    def keys(self, bucket, prefix=""):
        """The keys of all pages."""
        found, more = [], {}
        while True:
            page = self.list(bucket, prefix=prefix, **more)
            if page.status != 200:
                raise OSError(f"cannot list {bucket}/{prefix}: {page}")
            found += page.texts("Contents/Key")
            if page.texts("IsTruncated") != ["true"]:
                return found
            more = {"continuation_token": page.texts("NextContinuationToken")[0]}

    # --- Uploads in parts.

    def create_upload(self, bucket, key):
        """Begins an upload in parts. Returns its id."""
        return self.request("POST", f"/{bucket}/{key}", {"uploads": ""}).texts("UploadId")[0]

    def upload_part(self, bucket, key, upload, number, body, **headers):
        return self.request("PUT", f"/{bucket}/{key}",
                            {"uploadId": upload, "partNumber": str(number)},
                            _dashes(headers), body)

    def complete_upload(self, bucket, key, upload, etags, **headers):
        """`etags`: those of parts 1, 2, ..."""
        parts = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
                        for number, etag in enumerate(etags, 1))
        return self.request(
            "POST", f"/{bucket}/{key}", {"uploadId": upload}, _dashes(headers),
            f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode())

    def abort_upload(self, bucket, key, upload):
        return self.request("DELETE", f"/{bucket}/{key}", {"uploadId": upload})

    def uploads(self, bucket, prefix=""):
        """Unfinished uploads: (key, upload id) pairs."""
        page = self.request("GET", f"/{bucket}", {"uploads": "", "prefix": prefix})
        if page.status != 200 or page.texts("IsTruncated") == ["true"]:
            raise OSError(f"cannot list the uploads of {bucket}/{prefix}: {page}")
        return list(zip(page.texts("Upload/Key"), page.texts("Upload/UploadId")))


def _dashes(names):
    return {name.replace("_", "-"): value for name, value in names.items()}
