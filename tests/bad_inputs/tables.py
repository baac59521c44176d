"""All tables."""

from bad_inputs import command_lines, jobs, library_calls, projects, python_files, workspaces, yaml_files
from bad_inputs.row import Row

TABLES = (yaml_files, jobs, python_files, library_calls, command_lines, workspaces, projects)

ROWS: dict[str, Row] = {
    f"{table.__name__.rpartition('.')[2]}: {name}": row for table in TABLES for name, row in table.ROWS.items()
}
