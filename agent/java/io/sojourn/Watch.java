package io.sojourn;

import java.sojourn.Commands;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/** Posts heartbeats to an executor, and reports to the agent if one does not run in time. */
final class Watch implements Runnable {
    private static final int REPORTS_MAX = 100;

    private final String name;
    private final Executor executor;
    private final long deadlineNanos;
    private volatile Thread watched;
    private volatile int thread;
    private int reports;

    /** One heartbeat. Running it stores which thread runs the executor's tasks. */
    private final class Beat implements Runnable {
        private final CountDownLatch ran = new CountDownLatch(1);

        @Override
        public void run() {
            watched = Thread.currentThread();
            if (thread == 0) {
                thread = Commands.thread();
            }
            ran.countDown();
        }
    }

    Watch(String name, Executor executor, long deadlineMillis) {
        this.name = name;
        this.executor = executor;
        this.deadlineNanos = TimeUnit.MILLISECONDS.toNanos(deadlineMillis);
    }

    /** Posts the first heartbeat. Returns false if the executor refuses it. */
    boolean postFirst() {
        try {
            executor.execute(new Beat());
            return true;
        } catch (RuntimeException refused) {
            return false;
        }
    }

    private void beat() throws InterruptedException {
        Beat beat = new Beat();
        Commands.posted();
        long posted = System.nanoTime();
        executor.execute(beat);
        if (!beat.ran.await(deadlineNanos, TimeUnit.NANOSECONDS)) {
            if (reports++ < REPORTS_MAX) {
                String report = Threads.describe(name, System.nanoTime() - posted, watched, thread);
                Commands.stalled(name, System.nanoTime() - posted, report);
            }
            beat.ran.await();
        }
        TimeUnit.NANOSECONDS.sleep(deadlineNanos / 2);
    }

    @Override
    public void run() {
        try {
            Threads.describe(name, 0, null, 0); // Loads the classes before the first stall.
            while (true) {
                beat();
            }
        } catch (InterruptedException | RejectedExecutionException ended) {
            return;
        } catch (RuntimeException | LinkageError | OutOfMemoryError failed) {
            return; // The executor failed, or the agent is gone: the watch ends.
        }
    }
}
