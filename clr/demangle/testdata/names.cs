using System; using System.Collections.Generic; using System.Linq; using System.Threading.Tasks;
namespace My.App {
 interface IThing<T> { T Run(T x); event Action E; }
 class Shape<T> : IThing<T>, IEnumerable<T> {
  T IThing<T>.Run(T x) => x;
  event Action IThing<T>.E { add {} remove {} }
  IEnumerator<T> IEnumerable<T>.GetEnumerator() { try { yield return default(T); } finally { Console.Write(1);} }
  System.Collections.IEnumerator System.Collections.IEnumerable.GetEnumerator() => null;
  public static Func<int,int> field = x => x + 1;
  public int Prop { get; set; }
  public Shape() { int k = 3; Func<int> f = () => k; f(); }
  static Shape() { Action a = () => {}; a(); }
  public async Task<U> Gen<U>(U u) { int z = 1; Func<Task> g = async () => { await Task.Yield(); z++; }; await g(); return u; }
  ~Shape() {}
  public static Shape<T> operator +(Shape<T> a, Shape<T> b) => a;
  public T this[int i] => default(T);
 }
 static class Program {
  static async Task Main(string[] args) {
   int Local(int n) { return n <= 1 ? 1 : n * Local(n - 1); }
   async Task LocalAsync<Q>(Q qq) { await Task.Delay(1); Console.Write(qq); }
   await LocalAsync(Local(3));
   var an = new { A = 1, B = "x" };
   Console.WriteLine(an.ToString());
   var q = from a in args from b in args let c = a + b where c != "" select new { a, c };
   foreach (var i in Items(args.Length)) { Action x = () => { Action y = () => Console.Write(i); y(); }; x(); }
   switch (args[0]) { case "a": case "b": case "c": case "d": case "e": case "f": case "g": break; }
   await foreach2();
  }
  static async Task foreach2() { try { await Task.Yield(); } finally { await Task.Yield(); } }
  static IEnumerable<int> Items(int n) { try { yield return n; } finally { Console.Write(2);} }
  class Base { public virtual void V() {} }
  class Derived : Base { public override void V() { Action a = () => base.V(); a(); } async Task W() { base.V(); await Task.Yield(); base.V(); } }
 }
}
