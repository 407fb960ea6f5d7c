module My.App.Program
open System
open System.Collections.Generic
type Shape = | Circle of float | Square of side:float | Empty
  with member s.Area = match s with Circle r -> r * r | Square a -> a * a | Empty -> 0.0
type Rec = { Name : string; Age : int }
type IThing<'T> = abstract Run : 'T -> 'T
type Thing<'T>() =
  let cache = Dictionary<int,'T>()
  let rec loop n = if n = 0 then cache.Count else loop (n-1)
  member this.Go f = List.map (fun x -> f x) [1;2;3]
  interface IThing<'T> with
    member x.Run y = y
  interface IDisposable with
    member x.Dispose() = ()
  interface IEnumerable<'T> with
    member x.GetEnumerator() : IEnumerator<'T> = null
    member x.GetEnumerator() : System.Collections.IEnumerator = null
let (|Even|Odd|) n = if n % 2 = 0 then Even else Odd
let (|Parse|_|) (s:string) = match Int32.TryParse s with | true, v -> Some v | _ -> None
let (|DivBy|_|) d n = if n % d = 0 then Some () else None
let (+!) a b = a + b * 2
let inline twice f x = f (f x)
type System.String with
  member s.Shout() = s.ToUpper()
  static member Make n = String('a', n)
let numbers = seq { for i in 1 .. 10 do
                      yield i
                      yield! [i; i + 1] }
let work n = async {
  do! Async.Sleep 1
  let! x = async { return n + 1 }
  try
    return x
  finally printfn "done" }
let outer k =
  let inner x = x + k
  let rec deep a b = if a = 0 then b + k else deep (a - 1) (b * k)
  let printer = fun s -> printfn "%s %d" s k
  printer "a"
  inner 3 + deep 2 3
let curried a b c d = a + b + c + d
let partial = curried 1 2
let ``my odd name`` x = List.sumBy (fun y -> y * x) [1;2]
module Inner =
  type T = { X : int }
  let f xs = xs |> List.filter (fun x -> x > 1) |> List.map (fun x -> fun y -> x + y)
type Inner = class end
let q = lazy (1 + 2)
let obj1 = { new IThing<int> with member x.Run y = y + 1 }
let mk () = { new IComparer<int> with member x.Compare(a, b) = a - b }
exception MyErr of string
[<EntryPoint>]
let main argv =
  let rec even n = n = 0 || odd (n - 1)
  and odd n = n <> 0 && even (n - 1)
  printfn "%A %d" (even 3) (outer 3)
  Seq.iter (fun x -> printfn "%d" x) numbers
  work 3 |> Async.RunSynchronously |> ignore
  0
