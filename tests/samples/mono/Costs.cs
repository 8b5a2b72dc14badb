// Methods that work, wait, call themselves and throw; of each outermost call the CPU time that the thread had between
// its first and its last statement, and from before it to after it.
using System;
using System.Runtime.InteropServices;
using System.Threading;

static class Costs
{
    const int ThreadClock = 3;
    const int Rounds = 20;

    [StructLayout(LayoutKind.Sequential)]
    struct Moment
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc")]
    static extern int clock_gettime(int clock, out Moment moment);

    [ThreadStatic]
    static long inside;

    static long CpuNs()
    {
        Moment now;
        clock_gettime(ThreadClock, out now);
        return now.Seconds * 1000000000 + now.Nanoseconds;
    }

    static double Burn(int number)
    {
        long begin = CpuNs();
        double sum = 0;
        for (int i = 1; i < 200000; i++)
            sum += Math.Sqrt(i + number);
        inside = CpuNs() - begin;
        return sum;
    }

    static int Wait(int number)
    {
        long begin = CpuNs();
        Thread.Sleep(5);
        inside = CpuNs() - begin;
        return number;
    }

    static int Again(int depth)
    {
        long begin = CpuNs();
        int below = depth > 0 ? Again(depth - 1) : 0;
        Burn(depth);
        inside = CpuNs() - begin;
        return below + 1;
    }

    static int Refuse(int number)
    {
        Burn(number);
        if (number >= 0)
            throw new InvalidOperationException();
        return number;
    }

    static void Run(object name)
    {
        for (int i = 0; i < Rounds; i++)
        {
            long begin = CpuNs();
            Burn(i);
            Console.WriteLine("{0} Burn {1} {2}", name, inside, CpuNs() - begin);
            begin = CpuNs();
            Wait(i);
            Console.WriteLine("{0} Wait {1} {2}", name, inside, CpuNs() - begin);
            begin = CpuNs();
            Again(2);
            Console.WriteLine("{0} Again {1} {2}", name, inside, CpuNs() - begin);
            try
            {
                Refuse(i);
            }
            catch (InvalidOperationException)
            {
            }
        }
    }

    static int Main()
    {
        Burn(0); // compiled, what is measured has nothing of that
        Wait(0);
        Again(0);
        var other = new Thread(Run);
        other.Start("other");
        Run("main");
        other.Join();
        return 0;
    }
}
