package io.sojourn;

import java.lang.management.LockInfo;
import java.lang.management.ManagementFactory;
import java.lang.management.MonitorInfo;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;

/** Describes all threads as the first part of a JSON object, in ASCII. The agent adds the rest. */
final class Threads {
    private static final int TEXT_MAX = 200000;
    private static final int FRAMES_MAX = 100;

    private Threads() {
    }

    static String describe(String name, long waitedNanos, Thread watched, int thread) {
        StringBuilder text = new StringBuilder(1 << 14);
        text.append("{\"watch\":");
        quote(text, name);
        text.append(",\"waited_ns\":").append(waitedNanos).append(",\"tid\":").append(thread).append(",\"thread\":");
        quote(text, watched != null ? watched.getName() : "");
        text.append(",\"threads\":[");
        try {
            list(text, watched);
        } catch (SecurityException | LinkageError refused) {
            // A program without the module java.management has no stacks.
        }
        return text.append(']').toString();
    }

    private static void list(StringBuilder text, Thread watched) {
        ThreadMXBean bean = ManagementFactory.getThreadMXBean();
        ThreadInfo[] all =
            bean.dumpAllThreads(bean.isObjectMonitorUsageSupported(), bean.isSynchronizerUsageSupported());
        boolean isFirst = true;
        for (int round = 0; round < 2; round++) { // The watched thread comes first.
            for (ThreadInfo info : all) {
                boolean isWatched = watched != null && info.getThreadId() == watched.getId();
                if (isWatched == (round == 0) && info.getThreadId() != Thread.currentThread().getId()
                        && text.length() < TEXT_MAX) {
                    text.append(isFirst ? "" : ",");
                    describe(text, info);
                    isFirst = false;
                }
            }
        }
    }

    private static void describe(StringBuilder text, ThreadInfo info) {
        text.append("{\"name\":");
        quote(text, info.getThreadName());
        text.append(",\"state\":\"").append(info.getThreadState()).append('"');
        LockInfo lock = info.getLockInfo();
        if (lock != null) {
            text.append(",\"waits_for\":");
            quote(text, identity(lock));
        }
        if (info.getLockOwnerName() != null) {
            text.append(",\"held_by\":");
            quote(text, info.getLockOwnerName());
        }
        owned(text, info);
        frames(text, info.getStackTrace());
        text.append('}');
    }

    private static void owned(StringBuilder text, ThreadInfo info) {
        String separator = ",\"holds\":[";
        for (MonitorInfo monitor : info.getLockedMonitors()) {
            text.append(separator);
            quote(text, identity(monitor));
            separator = ",";
        }
        for (LockInfo lock : info.getLockedSynchronizers()) {
            text.append(separator);
            quote(text, identity(lock));
            separator = ",";
        }
        text.append(separator.equals(",") ? "]" : "");
    }

    private static void frames(StringBuilder text, StackTraceElement[] frames) {
        text.append(",\"frames\":[");
        for (int i = 0; i < frames.length && i < FRAMES_MAX && text.length() < TEXT_MAX; i++) {
            text.append(i == 0 ? "" : ",");
            quote(text, frames[i].getClassName() + "." + frames[i].getMethodName() + "(" + place(frames[i]) + ")");
        }
        text.append(']');
    }

    private static String place(StackTraceElement frame) {
        if (frame.isNativeMethod()) {
            return "Native Method";
        }
        String file = frame.getFileName();
        return file == null ? "Unknown Source" : frame.getLineNumber() < 0 ? file : file + ":" + frame.getLineNumber();
    }

    private static String identity(LockInfo lock) {
        return lock.getClassName() + "@" + Integer.toHexString(lock.getIdentityHashCode());
    }

    private static void quote(StringBuilder text, String value) {
        text.append('"');
        for (int i = 0; i < value.length(); i++) {
            char unit = value.charAt(i);
            if (unit == '"' || unit == '\\') {
                text.append('\\').append(unit);
            } else if (unit < ' ' || unit > '~') {
                text.append(String.format("\\u%04x", (int) (Character.isSurrogate(unit) ? '\ufffd' : unit)));
            } else {
                text.append(unit);
            }
        }
        text.append('"');
    }
}
