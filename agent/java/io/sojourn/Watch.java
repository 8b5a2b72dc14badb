package io.sojourn;

import java.sojourn.Commands;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/** Posts heartbeats to the thread of an executor, and tells the agent when one is not answered in time. */
final class Watch implements Runnable {
    private static final int REPORTS_MAX = 100;

    private final String name;
    private final Executor executor;
    private final long deadlineNanos;
    private volatile Thread watched;
    private volatile int thread;
    private int reports;

    /** One heartbeat. */
    private final class Beat implements Runnable {
        private final CountDownLatch answered = new CountDownLatch(1);

        @Override
        public void run() {
            watched = Thread.currentThread();
            if (thread == 0) {
                thread = Commands.thread();
            }
            answered.countDown();
        }
    }

    Watch(String name, Executor executor, long deadlineMillis) {
        this.name = name;
        this.executor = executor;
        this.deadlineNanos = TimeUnit.MILLISECONDS.toNanos(deadlineMillis);
    }

    /** Learns which thread it is; false: the executor takes no tasks. */
    boolean introduce() {
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
        if (!beat.answered.await(deadlineNanos, TimeUnit.NANOSECONDS)) {
            if (reports++ < REPORTS_MAX) {
                String report = Threads.describe(name, System.nanoTime() - posted, watched, thread);
                Commands.stalled(name, System.nanoTime() - posted, report);
            }
            beat.answered.await();
        }
        TimeUnit.NANOSECONDS.sleep(deadlineNanos / 2);
    }

    @Override
    public void run() {
        try {
            Threads.describe(name, 0, null, 0); // its classes are loaded before there is a stall
            while (true) {
                beat();
            }
        } catch (InterruptedException | RejectedExecutionException ended) {
            return;
        } catch (RuntimeException | LinkageError | OutOfMemoryError failed) {
            return; // the program's executor, or the agent has gone: nothing more is watched
        }
    }
}
