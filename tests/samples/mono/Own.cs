using System;
using System.Collections.Generic;
using System.Globalization;

/* Calls whose values a rule names by the class alone. Prints each call as function.txt has it. */
public class Own
{
    public enum Color { Red, Green, Blue = 7 }

    public struct Point
    {
        public int X;
        public int Y;
    }

    public class Gen<T>
    {
        public T Same(T value)
        {
            return value;
        }
    }

    const int RandomCalls = 500;

    static long Whole(sbyte small, short number, int usual, long big)
    {
        return small + number + usual + big;
    }

    static ulong Unsigned(byte small, ushort number, uint usual, ulong big)
    {
        return small + (ulong)number + usual + big;
    }

    double Real(float single, double twice)
    {
        return single * twice;
    }

    static char Letter(char letter, bool yes)
    {
        return yes ? letter : 'n';
    }

    static string Text(string name, object any)
    {
        return name + any;
    }

    static Color Paint(Color color, object any)
    {
        return Color.Blue;
    }

    static decimal Price(decimal price)
    {
        return price * 2;
    }

    static DateTime Day(DateTime day, TimeSpan span)
    {
        return day + span;
    }

    static int[] Array(int[] numbers, string[] names, object[] objects)
    {
        return new[] { 7, 8 };
    }

    static void Change(ref int number, ref string text, out long big, ref Color color)
    {
        color = Color.Red;
        number++;
        text = "after";
        big = 5;
    }

    static Point Move(Point at, int? by)
    {
        return new Point { X = at.X + 1, Y = at.Y };
    }

    static T Generic<T>(T value)
    {
        return value;
    }

    static int Many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k)
    {
        return a + k;
    }

    static void None()
    {
    }

    static bool Refuse(string why)
    {
        throw new InvalidOperationException(why);
    }

    static double Mixed(int number, long big, double real, string text)
    {
        return number + real;
    }

    static void Print(string call, object result)
    {
        Console.WriteLine("Own" + call + "ret:" + Convert.ToString(result, CultureInfo.InvariantCulture));
    }

    /* Calls Mixed with numbers of a linear congruential generator, and prints them. */
    static void Random()
    {
        long state = 42;
        for (int i = 0; i < RandomCalls; i++)
        {
            state = unchecked(state * 6364136223846793005L + 1442695040888963407L);
            int number = (int)(state >> 32);
            double real = BitConverter.Int64BitsToDouble(state & 0x7fefffffffffffffL);
            string text = state.ToString("x");
            double result = Mixed(number, state, real, text);
            Console.WriteLine("mixed\t{0}\t{1}\t{2}\t{3}\t{4}", number, state, BitConverter.DoubleToInt64Bits(real),
                              text, BitConverter.DoubleToInt64Bits(result));
        }
    }

    static void Objects()
    {
        Print(":Paint(Green,Red)", Paint(Color.Green, Color.Red));
        Print(":Paint(5,null)", Paint((Color)5, null));
        Print(":Price(-12.3400)", Price(-12.3400m));
        Print(":Price(79228162514264337593543950335)", "!System.OverflowException");
        try
        {
            Price(decimal.MaxValue);
        }
        catch (OverflowException)
        {
        }
        Print(":Day(2026-02-28 23:59:59.5,1.00:00:01)",
              Day(new DateTime(2026, 2, 28, 23, 59, 59, 500), new TimeSpan(1, 0, 0, 1))
                  .ToString("yyyy-MM-dd HH:mm:ss.FFFFFFF", CultureInfo.InvariantCulture));
        Print(":Array(System.Int32[3]{1,-2,3},System.String[2]{\"a\",null},System.Object[5]{1,true,'c',Red,...})",
              "System.Int32[2]{7,8}");
        Array(new[] { 1, -2, 3 }, new[] { "a", null }, new object[] { 1, true, 'c', Color.Red, 5 });
        Move(new Point { X = 1, Y = 2 }, 4);
        Print(":Move({X=1,Y=2},4)", "{X=2,Y=2}");
        Move(new Point(), null);
        Print(":Move({X=0,Y=0},null)", "{X=1,Y=0}");
    }

    public static void Main()
    {
        CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
        Print(":Whole(-8,-300,70000,1099511627776)", Whole(-8, -300, 70000, 1L << 40));
        Print(":Unsigned(200,60000,4000000000,18446744073709000000)", Unsigned(200, 60000, 4000000000, 18446744073709000000));
        Print(":Real(1.5,2.0)", new Own().Real(1.5f, 2.0).ToString("0.0", CultureInfo.InvariantCulture));
        Print(":Letter('\u00e4',1)", "'" + Letter('\u00e4', true) + "'");
        Print(":Text(\"J\u00f6rg\",\"any\")", '"' + Text("J\u00f6rg", "any") + '"');
        Print(":Text(null,5)", '"' + Text(null, 5) + '"');
        Objects();
        int number = 1;
        string text = "before";
        long big;
        Color color = Color.Blue;
        Change(ref number, ref text, out big, ref color);
        Print(":Change(1,\"before\",0,Blue)", "-");
        Print(":Generic(\"generic\")", '"' + Generic("generic") + '"');
        Print(":Generic(12)", Generic(12));
        Print("/Gen`1:Same(\"generic\")", '"' + new Gen<string>().Same("generic") + '"');
        Print("/Gen`1:Same(12)", new Gen<int>().Same(12));
        Print(":Many(1,2,3,4,5,6,7,8,9,10,11)", Many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
        None();
        Print(":None()", "-");
        try
        {
            Refuse("no");
        }
        catch (InvalidOperationException)
        {
            Print(":Refuse(\"no\")", "!System.InvalidOperationException");
        }
        Random();
    }
}
