"""The pages of a warehouse: `figures` is the SQL, `report` runs it and writes, `page` makes the HTML."""
