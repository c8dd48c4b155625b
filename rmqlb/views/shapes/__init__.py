"""The keys of each result, said once: mypy holds the views to them, and `rmqlb schema` prints them as JSON Schema.

Rules of this package:
- A shape is a TypedDict whose keys are the JSON's, and whose docstring says what each of them means; both become part
  of the schema. Every key is always there: what is unknown is null.
- Views import shapes for the type checker only; to build them costs a start-up that only `rmqlb schema` need pay.
- A minor version of the format only adds keys.
"""
