// Each line of input makes faults that become exceptions, and prints what was caught.
import core.stdc.stdlib : exit;
import core.sys.posix.signal;
import std.stdio;

class Fault : Exception
{
    this()
    {
        super("fault");
    }
}

struct Node
{
    int value;
    Node* next;
}

extern (C) void onFault(int)
{
    throw new Fault;
}

int follow(Node* from)
{
    return from.value;
}

int second(Node* from)
{
    return callee(from.next) + 1;
}

int divide(int a, int b)
{
    return a / b;
}

// The compiler must not see that what is called throws nothing.
__gshared int function(Node*) callee = &follow;
__gshared int function(Node*) caller = &second;
__gshared int function(int, int) divider = &divide;

int batch()
{
    int caught = 0;
    foreach (i; 0 .. 20)
    {
        try
            caught += callee(null);
        catch (Fault)
            caught++;
        try
            caught += caller(new Node);
        catch (Fault)
            caught++;
        try
            caught += divider(i, 0);
        catch (Fault)
            caught++;
    }
    return caught;
}

void main()
{
    sigaction_t action;
    action.sa_handler = &onFault;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, null);
    sigaction(SIGFPE, &action, null);
    foreach (line; stdin.byLine)
    {
        writeln("caught ", batch());
        stdout.flush();
    }
    exit(3);
}
