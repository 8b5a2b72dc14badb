class Killed {
static void Main() {
System.Diagnostics.Process.GetCurrentProcess().Kill();
}
}
