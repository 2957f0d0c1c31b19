/* imgward-worker: the command line of the supervisor. */
#include "base/program.h"
#include "worker/supervisor.h"

int main(int argc, char **argv)
{
    static const struct program program = {
        .name = "imgward-worker",
        .usage =
            "Signals: TERM finishes current pictures and exits, a second TERM exits at once; HUP reloads.\n",
        .check = supervisor_check,
        .run = supervisor_run,
    };
    return program_main(&program, argc, argv);
}
