package java.lang;
public class VirtualThread extends Thread { public VirtualThread(Runnable run) { super(run); } }
