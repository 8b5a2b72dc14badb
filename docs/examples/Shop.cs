/* A small shop on Mono: sells orders, and asks a bank that is slow. Shop.exe [ORDERS] */
using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Acme
{
    public sealed class Shop
    {
        const int Items = 400;
        const int Lines = 20;
        const int BankMs = 50;
        readonly int[] prices = new int[Items];

        Shop()
        {
            for (int item = 0; item < Items; item++)
                prices[item] = item * 3 + 1;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        int PriceOf(int item) => prices[item % Items];

        int TotalOf(int order)
        {
            int total = 0;
            for (int line = 0; line < Lines; line++)
                total += PriceOf(order * 31 + line * 7);
            return total;
        }

        bool AskBank(int total)
        {
            Thread.Sleep(BankMs);
            return total > 0;
        }

        bool Sell(int order)
        {
            int total = TotalOf(order);
            return order % 40 == 0 ? AskBank(total) : total > 0;
        }

        public static void Main(string[] words)
        {
            int orders = words.Length > 0 ? int.Parse(words[0]) : 100;
            var shop = new Shop();
            int sold = 0;
            for (int order = 1; order <= orders; order++)
                sold += shop.Sell(order) ? 1 : 0;
            Console.WriteLine($"{sold} orders sold");
        }
    }
}
