package io.sojourn;

import java.sojourn.Commands;
import java.util.concurrent.Executor;

/**
 * A Java program's interface to its tracer; sojourn.h is the interface for C. In an untraced JVM each method costs one
 * comparison. Thread-safe. No method throws an exception.
 */
public final class Sojourn {
    private static final int START = 1;
    private static final int STOP = 2;
    private static final int DUMP = 3;
    private static final int FRAME = 4;

    /** True if the agent has defined java.sojourn.Commands. An agent that attaches later sets this field. */
    private static boolean isThere = findAgent();

    private Sojourn() {
    }

    private static boolean findAgent() {
        try {
            Class.forName("java.sojourn.Commands", false, null);
            return true;
        } catch (ClassNotFoundException absent) {
            return false;
        }
    }

    private static void request(int number) {
        if (isThere) {
            Commands.request(number);
        }
    }

    private static void mark(String name, boolean isEnd) {
        if (isThere && name != null) {
            Commands.mark(name, isEnd);
        }
    }

    /** Marks the start of a phase or a test case. At most 63 bytes of the name, in UTF-8, are kept. */
    public static void markBegin(String name) {
        mark(name, false);
    }

    /** Marks the end of the phase or test case of that name. */
    public static void markEnd(String name) {
        mark(name, true);
    }

    /** Starts to record. */
    public static void start() {
        request(START);
    }

    /** Stops recording. */
    public static void stop() {
        request(STOP);
    }

    /** In flight mode, keeps the last seconds if the policy has a trigger "app". */
    public static void dumpFlight() {
        request(DUMP);
    }

    /**
     * Watches the thread that runs the tasks of an executor, for example {@code SwingUtilities::invokeLater}. A daemon
     * thread posts heartbeats to the executor until the executor refuses one. If a heartbeat does not run within the
     * deadline, that is reported with the stacks and locks of all threads. It also fires triggers "jank" of the policy
     * whose "loop" matches the name.
     */
    public static void watch(String name, Executor executor, long deadlineMillis) {
        if (isThere && name != null && !name.isEmpty() && executor != null && deadlineMillis > 0) {
            Watch watch = new Watch(name, executor, deadlineMillis);
            if (watch.postFirst()) {
                Thread thread = new Thread(watch, "sojourn-watch");
                thread.setDaemon(true);
                thread.start();
            }
        }
    }

    /** Marks the start of a frame. A "jank" trigger that names no function compares the time between two frames. */
    public static void frameTick() {
        request(FRAME);
    }
}
