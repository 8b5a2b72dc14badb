// Writes an assembly again, with names that nobody should trust, and with many methods more:
// Hostile IN.dll OUT.dll [METHODS]
using System.Linq;
using Mono.Cecil;
using Mono.Cecil.Cil;

static class Hostile
{
    static void Main(string[] words)
    {
        var module = ModuleDefinition.ReadModule(words[0]);
        var victim = module.GetType("Victim");
        string[] names = { "", "a\nb\r\"c\"\t\\", "\u0001\u007f\u202e", "]enter:x()ret:0", new string('n', 5000) };
        for (int i = 0; i < names.Length; i++) {
            victim.Methods.First(method => method.Name == new[] { "First", "Second", "Third", "Fourth", "Fifth" }[i]).Name = names[i];
        }
        victim.Namespace = "q'\"; DROP TABLE calls;--\n";
        victim.Name = "<b>&";
        for (int i = 0; words.Length > 2 && i < int.Parse(words[2]); i++) {
            var method = new MethodDefinition("m" + i, MethodAttributes.Public | MethodAttributes.Static, module.TypeSystem.Void);
            method.Body.Instructions.Add(Instruction.Create(OpCodes.Ret));
            victim.Methods.Add(method);
        }
        module.Write(words[1]);
    }
}
