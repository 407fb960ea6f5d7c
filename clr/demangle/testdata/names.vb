Imports System
Imports System.Collections.Generic
Imports System.Linq
Imports System.Threading.Tasks
Namespace My.App
 Interface IThing(Of T)
  Function Run(x As T) As T
 End Interface
 Class Shape(Of T)
  Implements IThing(Of T)
  Public Function RunIt(x As T) As T Implements IThing(Of T).Run
   Return x
  End Function
  Public Event Changed As EventHandler
  Public Sub New()
   Dim k = 3
   Dim f As Func(Of Integer) = Function() k
   f()
  End Sub
  Public Async Function Gen(Of U)(x As U) As Task(Of U)
   Dim z = 1
   Dim g = Async Function() As Task(Of Integer)
            Await Task.Yield()
            z += 1
            Return z
           End Function
   Await g()
   Return x
  End Function
 End Class
 Class Base
  Public Overridable Sub V()
  End Sub
 End Class
 Class Derived
  Inherits Base
  Public Overrides Sub V()
   Dim a As Action = Sub() MyBase.V()
   a()
  End Sub
 End Class
 Module Program
  Delegate Sub D(a As Object, b As EventArgs)
  Iterator Function Items(n As Integer) As IEnumerable(Of Integer)
   Try
    Yield n
   Finally
    Console.Write(2)
   End Try
  End Function
  Sub Main(args As String())
   Static count As Integer = 3
   count += 1
   MainAsync(args).Wait()
   Dim d As D = Sub() Console.Write(1)
   d(Nothing, Nothing)
   Dim an = New With {.A = 1, Key .B = "x"}
   Console.WriteLine(an.ToString())
   Dim q = From a In args From b In args Let c = a & b Where c <> "" Select a, c
   Dim h = Function(x As Integer) x + 1
   Dim it = Iterator Function() As IEnumerable(Of Integer)
      Yield 1
     End Function
  End Sub
  Async Function MainAsync(args As String()) As Task
   Await Task.Yield()
   For Each i As Integer In Items(3)
    Dim x As Action = Sub()
      Dim y As Action = Sub() Console.Write(i)
      y()
     End Sub
    x()
   Next
  End Function
 End Module
End Namespace
