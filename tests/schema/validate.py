"""Prints the errors of a JSON document by a JSON schema, one a line with its place. The document is read from standard input."""

import json
import sys

import jsonschema

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
validator = jsonschema.validators.validator_for(schema)(schema)
for error in validator.iter_errors(json.load(sys.stdin)):
    place = "/".join(str(part) for part in error.absolute_path)
    print(f"/{place}: {error.message[:300]!r}")
