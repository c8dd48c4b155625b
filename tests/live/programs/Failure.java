/** Clients keep threads of their own, with which a program that failed would live on and say nothing. */
final class Failure {
    private Failure() {
    }

    /** From here on an exception that leaves this thread is printed and ends the process with status 1. */
    static void endsTheProcess() {
        Thread.currentThread().setUncaughtExceptionHandler((thread, problem) -> {
            problem.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
    }
}
