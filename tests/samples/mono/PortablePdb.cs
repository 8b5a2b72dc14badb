// Writes an assembly again with a portable PDB that says what its .mdb says, in it or beside it:
// PortablePdb IN.exe OUT.exe [embedded]
using System.Collections.Generic;
using System.Linq;
using Mono.Cecil;
using Mono.Cecil.Cil;
using Mono.CompilerServices.SymbolWriter;

static class PortablePdb
{
    static void Main(string[] words)
    {
        var documents = new Dictionary<int, Document>();
        var module = ModuleDefinition.ReadModule(words[0]);
        using (var symbols = MonoSymbolFile.ReadSymbolFile(words[0] + ".mdb")) {
            foreach (var source in symbols.Sources) { documents[source.Index] = new Document(source.FileName); }
            foreach (var entry in symbols.Methods) {
                var method = (MethodDefinition)module.LookupToken(entry.Token);
                foreach (var line in entry.GetLineNumberTable().LineNumbers) {
                    var at = method.Body.Instructions.First(instruction => instruction.Offset == line.Offset);
                    method.DebugInformation.SequencePoints.Add(new SequencePoint(at, documents[line.File]) {
                        StartLine = line.IsHidden ? 0xfeefee : line.Row, StartColumn = 1,
                        EndLine = line.IsHidden ? 0xfeefee : line.Row, EndColumn = line.IsHidden ? 1 : 9 });
                }
            }
        }
        ISymbolWriterProvider writer = new PortablePdbWriterProvider();
        if (words.Length > 2) { writer = new EmbeddedPortablePdbWriterProvider(); }
        module.Write(words[1], new WriterParameters { SymbolWriterProvider = writer });
    }
}
