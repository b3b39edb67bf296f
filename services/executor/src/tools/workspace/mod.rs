//! The tools of the profile `harness`: commands, and files of the session.

mod bash;
mod files;

use super::{Parameter, Tool, Toolset};

pub(super) use bash::plan_command;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "bash",
        toolset: Toolset::Workspace,
        needs_jq: false,
        description: "Runs a bash command in the workspace and returns its exit code and what it wrote. Not for sudo.",
        parameters: &[
            Parameter::text("command", "The command line."),
            Parameter::number("timeout", "Seconds after which the command is killed. 5 unless given.")
                .optional(),
        ],
        plan: bash::plan,
    },
    Tool {
        name: "read",
        toolset: Toolset::Workspace,
        needs_jq: false,
        description: "Reads a file of the workspace: numbered lines of a text, or a picture (png, jpeg, gif, webp) or \
                      a pdf as a whole.",
        parameters: &[
            Parameter::text("filePath", "Path of the file."),
            Parameter::integer("offset", "The first line, from 0. 0 unless given.").optional(),
            Parameter::integer("limit", "How many lines. 2000 unless given.").optional(),
        ],
        plan: files::plan_read,
    },
    Tool {
        name: "patch",
        toolset: Toolset::Workspace,
        needs_jq: false,
        description: "Adds, deletes and changes text files of the workspace. The patch is:\n\
                      *** Begin Patch\n\
                      *** Add File: PATH\n\
                      +each line of the new file\n\
                      *** Delete File: PATH\n\
                      *** Update File: PATH\n\
                      @@\n \
                      a line that stays\n\
                      -a line that goes\n\
                      +a line that comes\n\
                      *** End Patch\n\
                      The lines that stay and go must stand in the file exactly so, one after the other; the first \
                      place counts. A file must be read before it is changed or deleted.",
        parameters: &[Parameter::text("patch", "The patch.")],
        plan: files::plan_patch,
    },
];
