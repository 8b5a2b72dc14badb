package io.sojourn;

import java.sojourn.Commands;
import java.util.concurrent.Executor;

/**
 * A Java program's interface to its tracer; sojourn.h has the same for C. In a JVM that is not traced each method is
 * one comparison. Any thread; nothing is thrown.
 */
public final class Sojourn {
    private static final int START = 1;
    private static final int STOP = 2;
    private static final int DUMP = 3;
    private static final int FRAME = 4;

    /** The agent has defined its class; an agent that comes later says so here. */
    private static boolean isThere = look();

    private Sojourn() {
    }

    private static boolean look() {
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

    /** Begins a phase or a test case; at most 63 bytes of the name, in UTF-8, are kept. */
    public static void markBegin(String name) {
        mark(name, false);
    }

    /** Ends it. */
    public static void markEnd(String name) {
        mark(name, true);
    }

    /** Records from here on. */
    public static void start() {
        request(START);
    }

    /** Does not record from here on. */
    public static void stop() {
        request(STOP);
    }

    /** In flight mode, keeps the last seconds: a trigger "app" of the policy decides. */
    public static void dumpFlight() {
        request(DUMP);
    }

    /**
     * Watches the thread that an executor runs its tasks in, such as {@code SwingUtilities::invokeLater}: a heartbeat
     * that is not answered within the deadline is reported, with the stacks and locks of all threads, and fires
     * triggers "jank" of the policy whose "loop" matches the name. A daemon thread posts the heartbeats, until the
     * executor refuses one.
     */
    public static void watch(String name, Executor executor, long deadlineMillis) {
        if (isThere && name != null && !name.isEmpty() && executor != null && deadlineMillis > 0) {
            Watch watch = new Watch(name, executor, deadlineMillis);
            if (watch.introduce()) {
                Thread thread = new Thread(watch, "sojourn-watch");
                thread.setDaemon(true);
                thread.start();
            }
        }
    }

    /** A frame begins; the time between two of one thread is what "jank" triggers without a function look at. */
    public static void frameTick() {
        request(FRAME);
    }
}
